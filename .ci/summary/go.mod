module headgate.dev/headgate/ci/summary

go 1.26.0
