#!/usr/bin/env python3
"""Makes data of every kind, has the driver read it, and compares with what Pillow and numpy make of it.

    check.py --driver build/release/tests/data/data_driver
"""

import argparse
import gzip
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

random = np.random.default_rng(7)


def smooth(height, width, channels):
    """A picture with shapes, not noise: JPEG's decoders differ on noise."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 120 * np.sin((x * (c + 1) + y * (2 - c)) / 9) for c in range(channels)]
    return np.stack(planes, axis=-1).round().astype(np.uint8)


class Check:
    def __init__(self, driver):
        self.driver = driver
        self.checked = 0

    def run(self, path, dtype="u8", rank=4, prep=""):
        with tempfile.TemporaryDirectory() as out:
            run = subprocess.run([self.driver, path, out, dtype, str(rank), prep], capture_output=True, text=True)
            if run.returncode:
                raise SystemExit(f"{path} {prep}: {run.stderr}")
            labels = [line.split(" ", 1) for line in run.stdout.splitlines()]
            return [np.load(f"{out}/{i}.npy") for i in range(len(labels))], labels

    def equal(self, what, got, wanted, tolerance=0):
        self.checked += 1
        if got.shape != wanted.shape:
            raise SystemExit(f"{what}: shape {got.shape}, wanted {wanted.shape}")
        worst = np.abs(got.astype(float) - wanted.astype(float)).max()
        if worst > tolerance:
            raise SystemExit(f"{what}: differs by {worst}")

    def refused(self, path, why):
        self.checked += 1
        run = subprocess.run([self.driver, path, path.parent, "u8", "4"], capture_output=True, text=True)
        if run.returncode != 3 or why not in run.stderr:
            raise SystemExit(f"{path.name} is not refused: {run.stderr}")

    def picture(self, path, prep="", wanted=None, tolerance=0, **options):
        """One picture in NHWC against an array of HWC."""
        [got], _ = self.run(path, prep=f"{prep} layout=nhwc", **options)
        if wanted is None:
            image = Image.open(path)
            wanted = np.asarray(image.convert("L" if image.mode in ("1", "L", "LA") else "RGB"))
        if wanted.ndim == 2:
            wanted = wanted[..., None]
        self.equal(f"{path.name} {prep}", got[0], wanted, tolerance)


def check_decoding(check, folder):
    rgb = smooth(37, 53, 3)
    gray = smooth(37, 53, 1)[..., 0]
    alpha = np.dstack([rgb, random.integers(0, 256, (37, 53, 1), dtype=np.uint8)])
    pictures = {
        "rgb": Image.fromarray(rgb),
        "gray": Image.fromarray(gray),
        "rgba": Image.fromarray(alpha),
        "gray_alpha": Image.fromarray(rgb).convert("LA"),
        "palette": Image.fromarray(rgb).quantize(200),
        "palette4": Image.fromarray(rgb).quantize(11),
        "bits": Image.fromarray(gray).convert("1"),
    }
    for name, image in pictures.items():
        path = folder / f"{name}.png"
        image.save(path)
        check.picture(path)
    transparent = pictures["palette"].copy()
    transparent.save(folder / "transparent.png", transparency=3)
    check.picture(folder / "transparent.png")
    deep = random.integers(0, 65536, (11, 13), dtype=np.uint16)
    Image.fromarray(deep).save(folder / "deep.png")
    check.picture(folder / "deep.png", wanted=np.round(deep / 257.0).astype(np.uint8))
    for name, options in {"444": {"subsampling": 0}, "420": {"subsampling": 2}, "progressive": {"progressive": True},
                          "low": {"quality": 20}}.items():
        path = folder / f"{name}.jpg"
        Image.fromarray(rgb).save(path, **({"quality": 90} | options))
        check.picture(path, tolerance=2)
    Image.fromarray(gray).save(folder / "gray.jpeg", quality=90)
    check.picture(folder / "gray.jpeg", tolerance=2)
    Image.fromarray(rgb).convert("CMYK").save(folder / "cmyk.jpg")
    check.refused(folder / "cmyk.jpg", "not RGB")
    for name in ("420.jpg", "progressive.jpg", "rgb.png"):
        whole = (folder / name).read_bytes()
        (folder / "short").write_bytes(whole[:len(whole) * 2 // 3])
        check.refused(folder / "short", "is a broken")


def bilinear(image, height, width):
    """Between the four nearest pixels, centres at halves."""
    def places(old, new):
        at = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
        low = np.floor(at).astype(int)
        return low, np.minimum(low + 1, old - 1), at - low
    y0, y1, fy = places(image.shape[0], height)
    x0, x1, fx = places(image.shape[1], width)
    image = image.astype(float)
    fy, fx = fy[:, None, None], fx[None, :, None]
    top = image[y0][:, x0] * (1 - fx) + image[y0][:, x1] * fx
    low = image[y1][:, x0] * (1 - fx) + image[y1][:, x1] * fx
    return top * (1 - fy) + low * fy


def check_steps(check, folder):
    rgb = smooth(60, 81, 3)
    image = Image.fromarray(rgb)
    path = folder / "steps.png"
    image.save(path)
    for height, width in ((30, 40), (17, 90), (120, 13), (60, 81)):
        size = (width, height)
        # Width first, then height: Pillow 13 takes them the other way round where that is cheaper.
        wide = image.resize((width, 60), Image.Resampling.BILINEAR)
        check.picture(path, f"resize={height}x{width} filter=antialias",
                      np.asarray(wide.resize(size, Image.Resampling.BILINEAR)))
        check.picture(path, f"resize={height}x{width} filter=nearest",
                      np.asarray(image.resize(size, Image.Resampling.NEAREST)))
        check.picture(path, f"resize={height}x{width}", bilinear(rgb, height, width), 0.51)
    check.picture(path, "resize=32 filter=antialias", np.asarray(image.resize((43, 32), Image.Resampling.BILINEAR)))
    check.picture(path, "crop=32x40", rgb[14:46, 20:60])  # 20.5 goes to the even side
    check.picture(path, "color=gray", np.asarray(image.convert("L")))
    check.picture(path, "color=bgr", rgb[..., ::-1])
    resized = np.asarray(image.resize((345, 256), Image.Resampling.BILINEAR))[16:240, 60:284]
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    [got], _ = check.run(path, "f32", prep="imagenet")
    check.equal("imagenet", got[0], ((resized / 255 - mean) / std).transpose(2, 0, 1), 1e-5)
    [got], _ = check.run(path, "f16", prep="scale=1/255 layout=nhwc")
    check.equal("f16", got[0], (rgb / 255).astype(np.float16), 1e-3)
    script = folder / "double.py"
    script.write_text("import io, sys\nimport numpy as np\n"
                      "a = np.load(io.BytesIO(sys.stdin.buffer.read()))\n"
                      "assert a.dtype == np.uint8 and a.shape == (60, 81, 3)\n"
                      "b = io.BytesIO(); np.save(b, a[:2].astype(np.float32) * 2); sys.stdout.buffer.write(b.getvalue())\n")
    [got], _ = check.run(path, "f32", prep=f"command={sys.executable} {script}")
    check.equal("command", got[0], rgb[:2].astype(float) * 2)


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()


def check_sets(check, folder):
    images = random.integers(0, 256, (5, 28, 28), dtype=np.uint8)
    labels = random.integers(0, 10, 5, dtype=np.uint8)
    mnist = folder / "mnist"
    mnist.mkdir()
    (mnist / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
    (mnist / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    got, names = check.run(mnist)
    check.equal("mnist", np.concatenate(got), images[:, None])
    check.equal("mnist labels", np.array([int(label) for label, _ in names]), labels)

    planes = random.integers(0, 256, (4, 3, 32, 32), dtype=np.uint8)
    cifar = folder / "cifar"
    cifar.mkdir()
    (cifar / "test_batch.bin").write_bytes(b"".join(bytes([i]) + planes[i].tobytes() for i in range(4)))
    got, _ = check.run(cifar)
    check.equal("cifar", np.concatenate(got), planes)

    np.savez(folder / "set.npz", images=planes.astype(np.float64), y=np.arange(4))
    got, names = check.run(folder / "set.npz", "f32")
    check.equal("npz", np.concatenate(got), planes)
    check.equal("npz labels", np.array([int(label) for label, _ in names]), np.arange(4))
    np.savez_compressed(folder / "packed.npz", x=np.asfortranarray(planes))
    got, _ = check.run(folder / "packed.npz", prep="scale=2 from=nchw layout=nhwc", dtype="f32")
    check.equal("npz with steps", np.concatenate(got), planes.transpose(0, 2, 3, 1) * 2.0)


def check_events(check, folder):
    count = 3000
    x, y, on = (random.integers(0, n, count) for n in (128, 128, 2))
    time = np.sort(random.integers(1000, 90000, count))
    words = np.stack([1 | on << 1 | y << 2 | x << 17, time], axis=1).astype("<u4")
    packets = b"".join(
        np.array([1, 0], "<i2").tobytes() + np.array([8, 4, 0, len(part), len(part), len(part)], "<i4").tobytes() + part.tobytes()
        for part in np.array_split(words, 7))
    (folder / "user01.aedat").write_bytes(b"#!AER-DAT3.1\r\n#Format: RAW\r\n#!END-HEADER\r\n" + packets)
    (folder / "user01_labels.csv").write_text("class,startTime_usec,endTime_usec\n3,1000,50000\n11,50000,90000\n")
    got, names = check.run(folder / "user01.aedat", "f32", 5, "steps=8 downscale=4")
    for sample, (start, end) in zip(got, ((1000, 50000), (50000, 90000))):
        wanted = np.zeros((1, 8, 2, 32, 32))
        inside = (time >= start) & (time < end)
        step = (time[inside] - start) * 8 // (end - start)
        np.add.at(wanted, (0, step, on[inside], y[inside] // 4, x[inside] // 4), 1)
        check.equal("events", sample, wanted)
    check.equal("event labels", np.array([int(label) for label, _ in names]), np.array([2, 10]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True)
    check = Check(parser.parse_args().driver)
    for part in (check_decoding, check_steps, check_sets, check_events):
        with tempfile.TemporaryDirectory() as folder:
            part(check, pathlib.Path(folder))
    print(f"{check.checked} comparisons")


if __name__ == "__main__":
    main()
