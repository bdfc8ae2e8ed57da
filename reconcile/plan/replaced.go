package plan

import "headgate.dev/headgate/render/manifest"

// MadeBy returns the effect with the object of the commit whose step causes it, and with the new definition including its schemas,
// or nil if they are not available.
func (e Effect) MadeBy(of manifest.ID, after FullDefinition) Effect {
	s := *e.Change
	s.Whole = after
	e.Of, e.Change = of, &s
	return e
}

// Writing returns the effect with what its update writes.
func (e Effect) Writing(w Write) Effect {
	s := *e.Change
	s.Write = w
	e.Change = &s
	return e
}

// DeclaredAt returns the effect with the place in the commit that declares its object.
func (e Effect) DeclaredAt(at manifest.Origin) Effect {
	s := *e.Change
	s.Origin = at
	e.Change = &s
	return e
}
