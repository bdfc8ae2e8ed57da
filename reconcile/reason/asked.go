package reason

// The codes of definitions that are kept.
const (
	ActivationFinal  Code = "ActivationFinal"  // no policy names the definition
	PolicyPaused     Code = "PolicyPaused"     // the policy that names the definition
	DefinitionPaused Code = "DefinitionPaused" // the definition itself is paused
)

// The codes of the guard asked.
const (
	PolicyKeeps           Code = "PolicyKeeps"           // its management policy
	AnnotationKeeps       Code = "AnnotationKeeps"       // an annotation of the live object and its value
	LabelKeeps            Code = "LabelKeeps"            // a label of the live object and its value
	AsksToReplace         Code = "AsksToReplace"         // a key and its value in the commit
	AsksNotToCreate       Code = "AsksNotToCreate"       // a key and its value in the commit
	AnnotationAsksToLeave Code = "AnnotationAsksToLeave" // an annotation of the live object and its value
	LabelAsksToLeave      Code = "LabelAsksToLeave"      // a label of the live object and its value
	CommitAsksToLeave     Code = "CommitAsksToLeave"     // a key and its value in the commit
	MovedAway             Code = "MovedAway"             // the sync to which the live object will move
	TakenOverBySync       Code = "TakenOverBySync"       // the sync whose commit declares the object
)
