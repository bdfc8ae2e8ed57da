package plan

import "slices"

// A Stance is how a pass stands to its place: it makes the place as the commit wants, only looks at it, compares it with the commit, or
// gives it up. Whoever starts the pass chooses it. What holds only in some stances says in which.
type Stance string

// The stances. The history records those that end a sync.
const (
	Applying   Stance = ""          // the cluster becomes as the commit wants
	Looking    Stance = "Looking"   // other tools apply the commit: nothing is written, the inventory is what the sync saw as wanted, and trials are comparisons
	Comparing  Stance = "Comparing" // the place is a commit: every kind counts as served, and questions are not answered
	Counting   Stance = "Counting"  // the place is a commit, and a cluster answers questions
	Destroying Stance = "Delete"    // the sync ends, and its objects are deleted
	Orphaning  Stance = "Orphan"    // the sync ends, and its objects stay without an owner
)

// Stances are the stances in which something holds. Without any, it holds in all of them.
type Stances []Stance

var allStances = Stances{Applying, Looking, Comparing, Counting, Destroying, Orphaning}

// Except returns all other stances.
func Except(some ...Stance) Stances {
	return slices.DeleteFunc(slices.Clone(allStances), func(s Stance) bool { return slices.Contains(some, s) })
}

// What stances have in common.
var (
	OnCommit  = Stances{Comparing, Counting}         // the place is a commit, whose objects all count as ours
	Ending    = Stances{Destroying, Orphaning}       // no commit is wanted: the sync gives up its objects, as a user has requested explicitly
	OnCluster = Except(OnCommit...)                  // the place is a cluster
	Following = Except(Ending...)                    // a commit is wanted
	Answered  = Except(Comparing)                    // a cluster answers questions
	Writing   = Except(Looking, Comparing, Counting) // the pass may write
)

// In reports whether something that holds in some stances holds in this one.
func (s Stance) In(some Stances) bool { return some == nil || slices.Contains(some, s) }
