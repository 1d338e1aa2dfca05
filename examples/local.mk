# Every example goes into the tarball with what it needs; tests/scenario and README use them.
EXTRA_DIST += \
	examples/own_qdisc/Makefile \
	examples/own_qdisc/README.md \
	examples/own_qdisc/sch_step.c \
	examples/own_qdisc/study.yaml

# The studies that run as they are.
EXTRA_DIST += \
	examples/two-site-lossy/study.yaml \
	examples/ring-star/study.yaml \
	examples/ring-star/bucket.csv \
	examples/incast/study.yaml \
	examples/fat-tree-permutation/study.yaml \
	examples/wan-abilene/study.yaml \
	examples/wan-abilene/abilene.gml \
	examples/frames-md1/study.yaml \
	examples/lossy-training/study.yaml \
	examples/lossy-training/shards.csv \
	examples/lossy-training/README.md \
	examples/lossy-training/table
