package reason

// The codes of deletions.
const (
	DeletionUnknown      Code = "DeletionUnknown"      // why it is not known whether the object is gone
	NotDeleting          Code = "NotDeleting"          // the object is not being deleted
	Deleting             Code = "Deleting"             // since when the object is being deleted
	DeletingInstances    Code = "DeletingInstances"    // since when a CRD is being deleted, which waits for its custom resources
	DeletingFinalizers   Code = "DeletingFinalizers"   // since when the object is being deleted, and the finalizers on it
	DeletingByCrossplane Code = "DeletingByCrossplane" // since when the object is being deleted, and its finalizers, some of Crossplane or a provider
	DeletingContents     Code = "DeletingContents"     // since when a namespace is being deleted, which waits for the objects in it
)
