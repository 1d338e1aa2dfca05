# Every example goes into the tarball with what it needs; tests/scenario and README use them.
EXTRA_DIST += \
	examples/own_qdisc/Makefile \
	examples/own_qdisc/README.md \
	examples/own_qdisc/sch_step.c \
	examples/own_qdisc/study.yaml
