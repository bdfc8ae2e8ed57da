package schema

// ChangesBehaviour reports whether a change that breaks nothing changes what the API server does with an object.
func (c Change) ChangesBehaviour() bool {
	return c.Rule == Default || c.Rule == Undecided || c.MergesOtherwise()
}

// BetweenVersions reports whether a change concerns two versions between which nothing converts objects.
func (c Change) BetweenVersions() bool {
	switch c.Rule {
	case Unconverted, Unshared:
		return true
	case Storage:
		return c.Breaking
	}
	return false
}

// MergesOtherwise reports whether a change makes server-side apply replace a list or a map that it merged before.
func (c Change) MergesOtherwise() bool {
	switch c.Rule {
	case "x-kubernetes-list-type":
		return c.From == `"map"` || c.From == `"set"`
	case "x-kubernetes-list-map-keys":
		return c.From != "" && c.To != ""
	case "x-kubernetes-map-type":
		return c.To == `"atomic"`
	}
	return false
}
