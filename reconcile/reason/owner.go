package reason

// The codes of the guard owner.
const (
	BothMakeCRDs   Code = "BothMakeCRDs"   // Crossplane would make CRDs in addition to this sync
	CrossplaneCame Code = "CrossplaneCame" // Crossplane runs in a cluster where this sync made the CRDs
	CrossplaneLeft Code = "CrossplaneLeft" // the API of Crossplane, which made the CRDs, is not served
)
