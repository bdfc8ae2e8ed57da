package report

import (
	"reflect"
	"testing"

	"headgate.dev/headgate/reconcile/plan"
)

// A comment is made of a report that came from another process: a field that got lost on the way would hide a break or
// a hold from the user. A new field that JSON leaves out fails here.
func TestSend(t *testing.T) {
	step := Step{definition: true, active: true, approvable: true, hold: "a", before: "b", because: []plan.Code{"C"}, kindOf: "d", unused: true}
	known := map[string]bool{"definition": true, "active": true, "approvable": true, "hold": true, "before": true, "because": true, "kindOf": true, "unused": true, "alters": true}
	for _, of := range []reflect.Type{reflect.TypeFor[Report](), reflect.TypeFor[Step](), reflect.TypeFor[Preview](), reflect.TypeFor[Check](), reflect.TypeFor[Cost](), reflect.TypeFor[Definition](), reflect.TypeFor[Package]()} {
		for i := range of.NumField() { //nolint:modernize // the index names a path
			f := of.Field(i)
			if carried := of == reflect.TypeFor[Step]() && known[f.Name]; !carried && (!f.IsExported() || f.Tag.Get("json") == "-") {
				t.Errorf("%s.%s does not reach another process: Send has to take it along", of, f.Name)
			}
		}
	}
	raw, err := Send(Report{Kind: "Report", Steps: []Step{step, {}}, Upgrades: []Step{{}, step}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Receive(raw)
	if err != nil || !reflect.DeepEqual(got.Steps, []Step{step, {}}) || !reflect.DeepEqual(got.Upgrades, []Step{{}, step}) {
		t.Errorf("Receive: %+v, %v", got, err)
	}
}
