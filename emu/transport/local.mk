# emu/transport: files are appended to the lists of Makefile.am here.
libgwplug_la_SOURCES += emu/transport/tp_ideal.c
builtin_plugins += gw_transport_ideal
libgwplug_la_SOURCES += emu/transport/tp_tcp.c emu/transport/cc_reno.c emu/transport/cc_cubic.c
builtin_plugins += gw_transport_tcp gw_cc_newreno gw_cc_reno gw_cc_cubic
libgwplug_la_SOURCES += emu/transport/tp_udp.c
builtin_plugins += gw_transport_datagram gw_transport_bounded_loss gw_transport_fec
libgwplug_la_SOURCES += emu/transport/tp_rocev2.c
builtin_plugins += gw_transport_rocev2
libgwplug_la_SOURCES += emu/transport/cc_none.c emu/transport/cc_dcqcn.c
builtin_plugins += gw_cc_none gw_cc_dcqcn
libgwplug_la_SOURCES += emu/transport/cc_bbr.c emu/transport/cc_dctcp.c
builtin_plugins += gw_cc_bbr gw_cc_dctcp
libgwplug_la_SOURCES += emu/transport/cc_hpcc.c emu/transport/cc_timely.c emu/transport/cc_swift.c
builtin_plugins += gw_cc_hpcc gw_cc_timely gw_cc_swift
