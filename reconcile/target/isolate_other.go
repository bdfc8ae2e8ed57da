//go:build !linux

package target

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// boundProcess ends this process once it has more memory of the system than this. There is no limit for data here.
func boundProcess(bytes int64) error {
	debug.SetMemoryLimit(bytes * 3 / 4)
	go func() {
		samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			metrics.Read(samples)
			if samples[0].Value.Uint64()-samples[1].Value.Uint64() > uint64(bytes) {
				os.Exit(outOfMemory)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return nil
}
