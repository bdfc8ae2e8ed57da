//go:build !linux

package target

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// boundProcess ends this process when it uses more memory than this. This operating system has no limit for data.
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
