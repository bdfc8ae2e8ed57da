package target

import (
	"runtime/debug"
	"syscall"
)

// boundProcess limits the data of this process. It is not the address space, most of which Go reserves before main. A limit
// below it has Go free memory first.
func boundProcess(bytes int64) error {
	debug.SetMemoryLimit(bytes * 3 / 4)
	limit := syscall.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)} //nolint:gosec // it is positive
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &limit)
}
