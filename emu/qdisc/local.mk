libgwplug_la_SOURCES += emu/qdisc/sch_pfifo.c emu/qdisc/sch_bfifo.c
builtin_plugins += gw_qdisc_pfifo gw_qdisc_bfifo
libgwplug_la_SOURCES += emu/qdisc/sch_netem.c
builtin_plugins += gw_qdisc_netem
