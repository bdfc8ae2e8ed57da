package health

import (
	"slices"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// A size is the cost of calls by the size of their arguments. Headgate does not know the types of fields before it has an object, and
// without types cel-go counts every call as one step, also one that reads a megabyte.
type size struct{}

// perStep is how many bytes of a text count as one step, as in cel-go.
const perStep = 10

// deep are the functions that read the elements of lists and maps.
var deep = []string{operators.Equals, operators.NotEquals, operators.In}

// CallCost returns the cost of a call.
func (size) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	of := textSteps
	if slices.Contains(deep, function) {
		of = steps
	}
	cost := uint64(1)
	for _, arg := range args {
		cost += of(arg)
	}
	return &cost
}

// textSteps returns the steps that a function takes to read an argument, if it reads no elements.
func textSteps(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / perStep
	case types.Bytes:
		return uint64(len(v)) / perStep
	}
	return 0
}

// steps returns the steps to read a value with its elements. It stops at the limit.
func steps(v ref.Val) uint64 {
	cost := 1 + textSteps(v)
	elements, is := v.(traits.Iterable)
	if !is {
		return cost
	}
	values, isMap := v.(traits.Mapper)
	for it := elements.Iterator(); it.HasNext() == types.True && cost < mostCost; {
		next := it.Next()
		cost += steps(next)
		if isMap {
			cost += steps(values.Get(next))
		}
	}
	return cost
}
