"""All that describes the distribution is in setup.cfg, but for its packages.

setup.cfg can either find packages or list them, and here both are needed: what stands under rlite_pubsub/ is found,
and rlite_pubsub.protocol stands elsewhere (setup.cfg's package_dir says where), so no search comes upon it.
pyspark_rlite stands beside them: Spark looks for data sources under such names (see there).
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["rlite_pubsub", "rlite_pubsub.*"]), "rlite_pubsub.protocol"],
    py_modules=["pyspark_rlite"],
)
