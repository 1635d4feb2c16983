#!/usr/bin/env python3
"""Makes the seeds of the fuzz targets of src/data/: one small file or two of each format.

    .deps/python/bin/python fuzz/make_data_seeds.py
"""

import gzip
import io
import pathlib
import struct

from PIL import Image

FUZZ = pathlib.Path(__file__).resolve().parent


def picture(format, **options):
    file = io.BytesIO()
    Image.frombytes("RGB", (8, 8), bytes(range(192))).save(file, format, **options)
    return file.getvalue()


def packet(kind, events):
    words = b"".join(struct.pack("<II", 1 | on << 1 | y << 2 | x << 17, time) for x, y, on, time in events)
    return struct.pack("<hhiiiiii", kind, 1, 8, 4, 0, len(events), len(events), len(events)) + words


idx = bytes([0, 0, 8, 3]) + struct.pack(">III", 2, 2, 3) + bytes(range(12))
SEEDS = {
    "data_idx_seeds/images": idx,
    "data_idx_seeds/images.gz": gzip.compress(idx, mtime=0),
    "data_cifar_seeds/ten": bytes([3]) + bytes(3072),
    "data_cifar_seeds/hundred": bytes([3, 99]) + bytes(3072),
    "data_aedat_seeds/recording": b"#!AER-DAT3.1\r\n#Format: RAW\r\n#!END-HEADER\r\n"
    + packet(1, [(3, 4, 1, 10), (127, 0, 0, 11)]) + packet(2, [(0, 0, 0, 12)]) + packet(1, [(5, 5, 0, 13)]),
    "data_picture_seeds/rgb.png": picture("PNG"),
    "data_picture_seeds/rgb.jpg": picture("JPEG", quality=50),
    "data_picture_seeds/progressive.jpg": picture("JPEG", quality=50, progressive=True),
}

for name, data in SEEDS.items():
    path = FUZZ / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
