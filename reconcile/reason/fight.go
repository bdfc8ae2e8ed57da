package reason

// The codes of the guard fight.
const (
	FightRests Code = "FightRests" // who undoes an update, in which field, and how often; without a field, the object is deleted
)
