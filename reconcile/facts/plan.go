package facts

// IsCatalogue reports whether an object comes with a package of the commit and a package revision controls the live object. The
// copy in the commit then only serves as a catalogue.
func (o Live) IsCatalogue(a Asked) bool {
	live, exists := o.Objects[a.ID]
	return exists && a.Package != "" && IsInstalled(live)
}

// LeavesToPackage reports whether an object is not applied because it comes with an installed package.
func (o Observed) LeavesToPackage(a Asked) bool {
	return o.IsCatalogue(a) && !a.Paused && !a.Policy.Observes()
}
