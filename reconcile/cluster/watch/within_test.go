package watch

import "testing"

// An account may get the rights of the whole cluster later, or the API server may have refused them for a moment only. So a watch of one
// namespace ends after a while, and the next one asks for all again.
func TestWiden(t *testing.T) {
	for within, ends := range map[string]bool{"team": true, "": false} {
		k, ended := &sharedKind{Shared: &Shared{}, within: within}, false
		k.widen(func() { ended = true })
		if k.within != "" || ended != ends {
			t.Errorf("%q: the watch is limited to %q, and ended: %t", within, k.within, ended)
		}
	}
}
