package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const namespace = "crossplane-system"

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// crossplane does the work of Crossplane's chart and of its init container: a namespace, secrets for certificates, and the CRDs in a
// directory. It writes the certificates below another directory, where pods would mount them.
func crossplane(ctx context.Context, certificates, crds string) error {
	client, err := cluster()
	if err != nil {
		return err
	}
	if err := create(ctx, client.Resource(namespaces), "Namespace", namespace); err != nil {
		return err
	}
	for _, name := range []string{"ca", "server", "client"} {
		if err := create(ctx, client.Resource(secrets).Namespace(namespace), "Secret", name); err != nil {
			return err
		}
	}
	if err := initialize(ctx, certificates, crds); err != nil {
		return err
	}
	for _, name := range []string{"server", "client"} {
		if err := mount(ctx, client, name, filepath.Join(certificates, name)); err != nil {
			return err
		}
	}
	return nil
}

func create(ctx context.Context, in dynamic.ResourceInterface, kind, name string) error {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
	_, err := in.Create(ctx, u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// initialize runs the init container until it succeeds, because an API server may not serve a new CRD yet.
func initialize(ctx context.Context, directory, crds string) error {
	none := filepath.Join(directory, "none")
	if err := os.MkdirAll(none, 0o700); err != nil {
		return err
	}
	for {
		//nolint:gosec // the demo names the directories
		cmd := exec.CommandContext(ctx, "crossplane", "core", "init", "--cr-ds-path="+crds, "--webhook-service-name=localhost", "--webhook-configurations-path="+none,
			"--tlsca-secret-name=ca", "--tls-server-secret-name=server", "--tls-client-secret-name=client")
		out, err := cmd.CombinedOutput()
		if err == nil && strings.Contains(string(out), "Initialization has been completed") {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("crossplane core init: %w\n%s", ctx.Err(), out), err)
		case <-time.After(time.Second):
		}
	}
}

// mount writes the data of a secret into a directory.
func mount(ctx context.Context, client dynamic.Interface, name, directory string) error {
	u, err := client.Resource(secrets).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return err
	}
	for key, encoded := range data {
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(directory, key), raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}
