package observe

import (
	"sync"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// types_ holds the types that are compiled into an API server. An API server decodes and encodes objects of these types,
// which changes the notation of some values.
var types_ = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	utilruntime.Must(apiextensions.AddToScheme(s))
	return s
})

// asStored returns an object in the notation of an API server that knows its type: quantities in their shortest form, and without
// redundant fields. It adds nothing. It returns objects of unknown types unchanged.
func asStored(u *unstructured.Unstructured) *unstructured.Unstructured {
	o, err := types_().New(u.GroupVersionKind())
	if err != nil {
		return u
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return u // the API server will refuse it, too, and report the reason
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return u
	}
	spelled, _ := asWritten(u.Object, written).(map[string]any)
	return &unstructured.Unstructured{Object: spelled}
}

// asWritten returns the fields of declared, with the values of written.
func asWritten(declared, written any) any {
	switch declared := declared.(type) {
	case map[string]any:
		if written, ok := written.(map[string]any); ok {
			both := make(map[string]any, len(declared))
			for key, value := range declared {
				if is, ok := written[key]; ok {
					both[key] = asWritten(value, is)
				}
			}
			return both
		}
	case []any:
		if written, ok := written.([]any); ok && len(written) == len(declared) {
			both := make([]any, len(declared))
			for i, value := range declared {
				both[i] = asWritten(value, written[i])
			}
			return both
		}
	}
	return written
}
