package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/spf13/pflag"
)

// A flag that accepts -1 passes it to code that never expected it. Every numeric flag of every verb refuses a number that means
// nothing and names itself, also a flag that was added later.
func TestEveryNumericFlagIsValidated(t *testing.T) {
	zeroMeans := []string{
		"depth",            // all levels
		"registry-timeout", // one attempt
		"verbose",          // no log
	}
	noLimit := []string{"controller max-activations", "controller max-prunes"}
	wrong := map[string][]string{
		"int":      {"-1", "1.5", "4611686018427387904"},
		"count":    {"-1", "1.5", "4611686018427387904"},
		"duration": {"-1s", "1000000h", "5"},
	}
	found := map[string]bool{}
	for _, verb := range verbs() {
		verb.Flags().VisitAll(func(f *pflag.Flag) {
			values, is := wrong[f.Value.Type()]
			if !is {
				if kind := f.Value.Type(); strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint") || strings.HasPrefix(kind, "float") {
					t.Errorf("--%s of %s has the type %s, which accepts any number: add it with addNumber", f.Name, verb.Name(), kind)
				}
				return
			}
			found[f.Name] = true
			if !slices.Contains(zeroMeans, f.Name) && !slices.Contains(noLimit, verb.Name()+" "+f.Name) {
				values = append(slices.Clone(values), "0")
			}
			for _, value := range values {
				if err := verb.Flags().Set(f.Name, value); err == nil || !strings.Contains(err.Error(), "--"+f.Name) {
					t.Errorf("%s --%s=%s is not refused with a message that names the flag: %v", verb.Name(), f.Name, value, err)
				}
			}
		})
	}
	for _, name := range []string{"depth", "max-activations", "max-prunes", "pull", "registry-timeout", "timeout", "verbose"} {
		if !found[name] {
			t.Errorf("--%s was not tried", name)
		}
	}
}

// --limits holds several numbers, one for each field of the API.
func TestEveryLimitIsValidated(t *testing.T) {
	for field := range reflect.TypeFor[v1alpha1.Limits]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		var l v1alpha1.Limits
		if err := (limitFlags{name: "100"}).into(&l); err != nil {
			t.Errorf("--limits %s=100: %v", name, err)
		}
		for _, value := range []string{"-1", "0", "much", "1Ei"} {
			if err := (limitFlags{name: value}).into(&l); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("--limits %s=%s is not refused with a message that names the limit: %v", name, value, err)
			}
		}
	}
}
