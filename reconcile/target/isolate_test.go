package target

import "testing"

// A preview that needs too much memory must report that, and not a crash: the author of the pull request can act on it, and a
// crash looks like a defect of Headgate. A crash for another reason must not be called too much memory.
func TestOutOfMemory(t *testing.T) {
	for _, tt := range []struct {
		name, output string
		want         bool
	}{
		{"heap", "fatal error: runtime: out of memory\n", true},
		{"metadata", "runtime: cannot allocate memory\nfatal error: runtime: cannot allocate memory\n", true},
		{"thread", "runtime: failed to create new OS thread (have 9 already; errno=11)\nfatal error: newosproc\n", true},
		{"queue of the garbage collector", "SIGSEGV: segmentation violation\nPC=0x42cd1d m=3 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x36bcb98b32c0 m=3 [idle]:\nruntime.(*spanQueue).tryDrain(0x1?)\n", true},
		{"nil pointer in our code", "panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4a8e3c]\n", false},
		{"two writers of a map", "fatal error: concurrent map writes\n", false},
		{"killed without output", "", false},
	} {
		var output tail
		_, _ = output.Write([]byte(tt.output))
		if got := output.outOfMemory(); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
