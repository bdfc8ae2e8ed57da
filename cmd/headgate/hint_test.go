package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/registry"
)

// A hint about the kubeconfig sends the user the wrong way if a registry is the problem.
func TestHintsNameTheRegistry(t *testing.T) {
	for trouble, names := range map[registry.Trouble]string{
		registry.Unauthorised: "docker login registry.example.org",
		registry.UnknownHost:  "DNS",
		registry.TimedOut:     "HTTPS_PROXY",
		registry.PlainHTTP:    "TLS",
		registry.Untrusted:    "certificate",
		registry.Unreachable:  "--offline",
	} {
		t.Run(string(trouble), func(t *testing.T) {
			err := errors.Join(errors.New("another"), fmt.Errorf("provider.yaml:5: package p: %w", registry.Error{Host: "registry.example.org", Trouble: trouble}))
			got := hint(err)
			if !strings.Contains(got, "registry registry.example.org") || !strings.Contains(got, names) || strings.Contains(got, "kubeconfig") {
				t.Errorf("the hint is %q", got)
			}
		})
	}
}
