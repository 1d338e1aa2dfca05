libgwplug_la_SOURCES += emu/qdisc/sch_pfifo.c emu/qdisc/sch_bfifo.c
builtin_plugins += gw_qdisc_pfifo gw_qdisc_bfifo
libgwplug_la_SOURCES += emu/qdisc/sch_netem.c
builtin_plugins += gw_qdisc_netem
libgwplug_la_SOURCES += emu/qdisc/sch_red.c emu/qdisc/sch_choke.c emu/qdisc/sch_ecn_threshold.c
libgwplug_la_SOURCES += emu/qdisc/sch_codel.c emu/qdisc/sch_fq_codel.c
builtin_plugins += gw_qdisc_red gw_qdisc_choke gw_qdisc_ecn_threshold
builtin_plugins += gw_qdisc_codel gw_qdisc_fq_codel
