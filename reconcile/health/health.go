// Package health decides with the expressions of a Sync whether objects are ready, as Flux does for a Kustomization.
package health

import (
	"context"
	"errors"
	"fmt"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Checks decide for the objects of some kinds. The zero value decides for none.
type Checks struct {
	of map[schema.GroupKind][]statusExpression // in the order in which Flux evaluates them
}

// A statusExpression is an expression, and the status of an object for which it is true.
type statusExpression struct {
	field string // of the Sync
	is    status.Status
	expression
}

// Compile returns the checks of a Sync. Its errors begin with the path of a field.
func Compile(all []v1alpha1.HealthCheck) (Checks, error) {
	checks := Checks{of: map[schema.GroupKind][]statusExpression{}}
	var problems []error
	for i, one := range all {
		for _, is := range order {
			text := is.text(one)
			if text == "" {
				continue
			}
			field := fmt.Sprintf("spec.healthCheckExprs[%d].%s", i, is.name)
			e, err := compile(text)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", field, err))
			}
			kind := schema.FromAPIVersionAndKind(one.APIVersion, one.Kind).GroupKind()
			checks.of[kind] = append(checks.of[kind], statusExpression{field, is.status, e})
		}
	}
	return checks, errors.Join(problems...)
}

// order lists the expressions of a check in the order in which Flux evaluates them.
var order = []struct {
	name   string
	text   func(v1alpha1.HealthCheck) string
	status status.Status
}{
	{"inProgress", func(h v1alpha1.HealthCheck) string { return h.InProgress }, status.InProgressStatus},
	{"failed", func(h v1alpha1.HealthCheck) string { return h.Failed }, status.FailedStatus},
	{"current", func(h v1alpha1.HealthCheck) string { return h.Current }, status.CurrentStatus},
}

// Has reports whether the checks decide for a kind.
func (c Checks) Has(kind schema.GroupKind) bool { return c.checkOf(kind) != nil }

// checkOf returns the check for a kind, or for all kinds of its group; nil if there is none.
func (c Checks) checkOf(kind schema.GroupKind) []statusExpression {
	if one, is := c.of[kind]; is {
		return one
	}
	return c.of[schema.GroupKind{Group: kind.Group}]
}

// Compute returns the status of an object of a kind that the checks decide for. An object whose status describes an earlier generation is in
// progress, and so is one for which no expression is true, or one cannot be evaluated, such as for a field that is not there yet.
func (c Checks) Compute(ctx context.Context, u *unstructured.Unstructured) *status.Result {
	progress := func(format string, args ...any) *status.Result {
		return &status.Result{Status: status.InProgressStatus, Message: fmt.Sprintf(format, args...)}
	}
	observed, is, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if err == nil && is && observed != u.GetGeneration() {
		return progress("its status is of an earlier generation")
	}
	last := ""
	for _, q := range c.checkOf(u.GroupVersionKind().GroupKind()) {
		last = q.field
		yes, err := q.holds(ctx, u.Object)
		switch {
		case err != nil && isSecret(u):
			return progress("%s cannot be evaluated", q.field) // the error may contain a value
		case err != nil:
			return progress("%s: %s", q.field, err)
		case yes:
			return &status.Result{Status: q.is, Message: q.field + " is true"}
		}
	}
	return progress("%s is not true", last)
}

func isSecret(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Secret" && u.GetAPIVersion() == "v1"
}
