package diff

import "headgate.dev/headgate/render/manifest"

// Selects exports selects for tests.
func (i Ignore) Selects(id manifest.ID) bool { return i.selects(id) }

// Of exports of for tests.
func (p Pointer) Of(v any) (any, bool) { return p.of(v) }
