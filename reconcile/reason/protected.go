package reason

// The codes of the guard protected.
const (
	UsageInCommit     Code = "UsageInCommit"     // the Usage of the commit
	LabelledInUse     Code = "LabelledInUse"     // the label that Usages set, which it carries
	UsagesNotRead     Code = "UsagesNotRead"     // Usages have not been read yet
	UsagesUnknown     Code = "UsagesUnknown"     // why Usages cannot be read
	ProtectedByUsage  Code = "ProtectedByUsage"  // a Usage that names it
	LabelWithoutUsage Code = "LabelWithoutUsage" // the label that Usages set, which it carries although no Usage names it
)
