graph [
  directed 1
  node [ id 0 host_bandwidth_up "100 Mbit" host_bandwidth_down "1 Gbit" ]
  node [ id 1 ]
  edge [ source 0 target 0 latency "1 ms" ]
  edge [ source 0 target 1 latency "10 ms" jitter "1 ms" packet_loss 0.01 ]
  edge [ source 1 target 0 latency "10 ms" packet_loss 0.0 ]
]
