package reason

// The codes of the guard inventory.
const (
	WrittenByHeadgate Code = "WrittenByHeadgate" // which of Headgate's own records the commit contains
	HoldsInventory    Code = "HoldsInventory"    // it is the namespace of the inventory
	NeverPruned       Code = "NeverPruned"       // which of Headgate's own records it is
)
