package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/registry"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// hint returns advice on a common error, or "" if the error's own text is enough.
func hint(err error) string {
	var (
		network   *net.OpError
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		path      *fs.PathError
	)
	if of, is := errors.AsType[registry.Error](err); is {
		return registryHint(of)
	}
	if _, is := errors.AsType[git.UnreachableError](err); is {
		return "check the URL of the repository, and that this machine reaches its server (HTTPS_PROXY is used)"
	}
	_, noContext := errors.AsType[noContextError](err)
	switch {
	case errors.Is(err, errNoKubeconfig):
		return "set KUBECONFIG or --kubeconfig FILE; 'headgate diff BASE HEAD', render, lint and why need no cluster"
	case noContext:
		return "'kubectl config get-contexts' lists the contexts of the kubeconfig"
	case clientcmd.IsConfigurationInvalid(err):
		return "check the kubeconfig with 'kubectl config view'"
	case errors.As(err, &authority):
		return "the authority in the kubeconfig did not issue the certificate: is it the right cluster?"
	case errors.As(err, &name), errors.As(err, &network):
		return "is the server up, and the address right? --kubeconfig and --context choose the cluster"
	case apierrors.IsUnauthorized(err):
		return "the credentials of the kubeconfig may have expired; log in again"
	case apierrors.IsForbidden(err):
		return "'kubectl auth can-i' lists what the user of the kubeconfig, or of --as, may do"
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist):
		return "check the path; it is relative to the working directory"
	}
	return ""
}

// registryHint returns advice on an error of a registry.
func registryHint(err registry.Error) string {
	switch err.Trouble {
	case registry.Unauthorised:
		return fmt.Sprintf("check the image and the credentials for the registry %[1]s: 'docker login %[1]s', or packagePullSecrets of the package", err.Host)
	case registry.UnknownHost:
		return fmt.Sprintf("check the name of the registry %s in the package, and the DNS of this machine", err.Host)
	case registry.TimedOut:
		return fmt.Sprintf("check that this machine reaches the registry %s (HTTPS_PROXY is used); --offline takes what was pulled before", err.Host)
	case registry.PlainHTTP:
		return fmt.Sprintf("serve the registry %s with TLS, and check its port; Headgate sends no credentials without TLS", err.Host)
	case registry.Untrusted:
		return fmt.Sprintf("check the certificate of the registry %s, or add its authority with SSL_CERT_FILE", err.Host)
	case registry.Unreachable:
		return fmt.Sprintf("check that the registry %s is up and its port is right; --offline takes what was pulled before", err.Host)
	}
	return ""
}
