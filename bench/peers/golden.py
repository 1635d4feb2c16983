"""The outputs without faults: is it the same model?"""

import numpy

from common import FOLDER, model_and_input

model, x = model_and_input()
numpy.save(f"{FOLDER}/torch.npy", model(x).numpy())
