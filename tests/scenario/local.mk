# Scenarios tests/scenario/*.yaml are found by themselves; files that they read go into EXTRA_DIST.
check_scripts += tests/scenario/examples
check_scripts += tests/scenario/closed_forms.sh tests/scenario/same.sh tests/scenario/cases.sh
EXTRA_DIST += tests/scenario/lib.sh tests/a6.awk
check_scripts += tests/scenario/tc_cases.sh
check_scripts += tests/scenario/aqm.sh tests/scenario/tcp_formulas.sh tests/scenario/corrupt.sh
EXTRA_DIST += tests/scenario/aqm-lib.sh
check_scripts += tests/scenario/loss_tolerant.sh
check_scripts += tests/scenario/roce.sh
EXTRA_DIST += tests/scenario/roce_icrc.py
check_scripts += tests/scenario/any_loss.sh tests/scenario/offload.sh
check_scripts += tests/scenario/oracles.sh tests/scenario/packet_scripts.sh
