package reason

// The codes of deactivation.
const (
	NotNamed             Code = "NotNamed"             // no policy names the definition
	ReturnsInactive      Code = "ReturnsInactive"      // Crossplane creates the deleted definition again, inactive
	BecomesInactive      Code = "BecomesInactive"      // the definition becomes inactive, and Crossplane deletes its CRD
	NothingActivates     Code = "NothingActivates"     // nothing activates the definition of a CRD
	DeletingCRD          Code = "DeletingCRD"          // the CRD of the definition is being deleted
	ComesBack            Code = "ComesBack"            // Crossplane will create the definition again, inactive
	CrossplaneDeletesCRD Code = "CrossplaneDeletesCRD" // Crossplane will delete the CRD of the inactive definition
	CRDGoes              Code = "CRDGoes"              // the CRD of the definition will be deleted
	RevisionRestores     Code = "RevisionRestores"     // the package revision that will create the definition again, inactive
	RevisionTouched      Code = "RevisionTouched"      // how many definitions Crossplane creates again
)
