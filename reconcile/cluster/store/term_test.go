package store

import "testing"

// Who leads takes over the leases of the leaders before, and of nobody else.
func TestTerms(t *testing.T) {
	now := Term{"uid", 5}
	for name, tc := range map[string]struct {
		holder string
		want   bool
	}{
		"Before":        {Term{"uid", 4}.holder("host/1/a"), true},
		"LongBefore":    {Term{"uid", 0}.holder("host/1/a"), true},
		"Same":          {Term{"uid", 5}.holder("host/1/a"), false},
		"Later":         {Term{"uid", 6}.holder("host/1/a"), false},
		"OtherElection": {Term{"another", 4}.holder("host/1/a"), false},
		"Run":           {Term{}.holder("host/1/a"), false},
		"NoNumber":      {"uid/term/x/host", false},
		"Nobody":        {"", false},
	} {
		if got := termOf(now.holder("host/2/b")).follows(termOf(tc.holder)); got != tc.want {
			t.Errorf("%s: %q: %t, want %t", name, tc.holder, got, tc.want)
		}
	}
	if (Term{}).follows(Term{}) {
		t.Error("a process that nobody elected follows another one")
	}
}
