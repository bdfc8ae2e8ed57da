package target

import (
	"testing"

	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render/packages"
)

// The process that reads a head must not extend the limits, whatever the head made it do.
func TestLimitsOfAHeadAreFinal(t *testing.T) {
	p := &parent{ctx: t.Context(), packages: &registry.Resolver{Cache: t.TempDir()}}
	if err := p.Head(packages.Named{Images: []string{"registry.example.org/a"}}, new(bool)); err != nil {
		t.Fatal(err)
	}
	limited := p.resolver()
	if err := p.Head(packages.Named{Images: []string{"inner.example.org/a"}}, new(bool)); err == nil || p.resolver() != limited {
		t.Error("the limits changed")
	}
}

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
