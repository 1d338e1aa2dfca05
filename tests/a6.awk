# a6.awk - scaling factor of PAPERS.md A6 by formula, from the fused flushes of a layer table
#   awk -v N=16 -v gbit=10 -v c=1 -f tests/a6.awk traffic/models/resnet50-v100-a6.csv
# Flushes queue first in, first out; each is 2 (N-1) chunks of S/N over the NIC and N-1 additions.
BEGIN {
    FS = ","; if (!c) c = 1
    rows = split("1e6 1.31e6 2.62e6 5.24e6 1.05e7 2.10e7 4.19e7 8.39e7 1.68e8 3.36e8 6.71e8", x, " ")
    split("1.0e-5 1.07e-5 1.82e-5 2.89e-5 4.82e-5 8.53e-5 1.61e-4 3.14e-4 6.16e-4 1.22e-3 2.43e-3", y, " ")
}
function add(b, i) {                                    # seconds to add two vectors of b bytes
    if (b <= x[1]) return y[1]
    for (i = 2; i < rows && b > x[i]; i++);
    return y[i - 1] + (b - x[i - 1]) * (y[i] - y[i - 1]) / (x[i] - x[i - 1])
}
/^#/ || /^name/ { next }
{ n++; bytes[n] = $2; forward += $3; wait[n] = $4 }
END {
    for (k = n; k >= 1; k--) {                          # rows are in forward order
        ready += wait[k]
        if (end < ready) end = ready
        end += 2 * bytes[k] * 8 * (N - 1) / (N * gbit * 1e9 * c) + (N - 1) * add(bytes[k] / N)
    }
    printf "%.6f\n", (forward + ready) / (forward + ready + (end > ready ? end - ready : 0))
}
