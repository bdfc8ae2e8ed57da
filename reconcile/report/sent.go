package report

import (
	"bytes"
	"encoding/json"
	"fmt"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/plan"
)

// sent is a report in the form for another Headgate process. It also holds what the JSON for programs omits.
type sent struct {
	Report                    Report
	Steps, Upgrades, Inactive []marks
	Packages                  []string // packages of the Bumps, in the same order
	Rulings                   []ruled
}

// marks holds the fields of a step that its JSON omits.
type marks struct {
	Definition, Active, Approvable bool
	Excused                        bool
	Claims                         []approval.Ask
	Hold, Before                   string
	Rulings                        []ruled
	Alters                         []plan.SchemaChange
	Restated, Placed, Closes       bool
}

func marksOf(steps []Step) []marks {
	all := make([]marks, len(steps))
	for i, s := range steps {
		all[i] = marks{s.definition, s.active, s.approvable, s.excused, s.claims, s.key, s.before, s.rulings, s.alters, s.restated, s.placed, s.closes}
	}
	return all
}

func mark(steps []Step, all []marks) error {
	if len(steps) != len(all) {
		return fmt.Errorf("%d steps have %d marks", len(steps), len(all))
	}
	for i, m := range all {
		s := &steps[i]
		s.definition, s.active, s.approvable, s.excused, s.claims, s.key, s.before = m.Definition, m.Active, m.Approvable, m.Excused, m.Claims, m.Hold, m.Before
		s.rulings, s.alters = m.Rulings, m.Alters
		s.restated, s.placed, s.closes = m.Restated, m.Placed, m.Closes
	}
	return nil
}

// Send encodes a report for another Headgate process.
func Send(r Report) ([]byte, error) {
	packages := make([]string, len(r.Bumps))
	for i, b := range r.Bumps {
		packages[i] = b.Package
	}
	return json.Marshal(sent{r, marksOf(r.Steps), marksOf(r.Upgrades), marksOf(r.Inactive), packages, r.rulings})
}

// Receive decodes a report from Send.
func Receive(data []byte) (Report, error) {
	var s sent
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // keeps integers as integers
	if err := d.Decode(&s); err != nil {
		return Report{}, err
	}
	if len(s.Packages) != len(s.Report.Bumps) {
		return Report{}, fmt.Errorf("%d packages are other images, and %d are named", len(s.Report.Bumps), len(s.Packages))
	}
	s.Report.rulings = s.Rulings
	for i := range s.Report.Bumps {
		s.Report.Bumps[i].Package = s.Packages[i]
	}
	if err := mark(s.Report.Steps, s.Steps); err != nil {
		return Report{}, err
	}
	if err := mark(s.Report.Upgrades, s.Upgrades); err != nil {
		return Report{}, err
	}
	return s.Report, mark(s.Report.Inactive, s.Inactive)
}
