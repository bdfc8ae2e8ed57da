package reason

// The codes of the guard controller.
const (
	TakesController Code = "TakesController" // it belongs to the controller, and the sync did not create it
	KeepsController Code = "KeepsController" // it belongs to the controller
)
