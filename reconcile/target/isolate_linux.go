package target

import (
	"runtime/debug"
	"syscall"
)

// boundProcess limits the data of this process. It does not limit the address space, because Go reserves most of that before main.
// Go's own memory limit is lower, so that Go frees memory first.
func boundProcess(bytes int64) error {
	debug.SetMemoryLimit(bytes * 3 / 4)
	limit := syscall.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)} //nolint:gosec // it is positive
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &limit)
}
