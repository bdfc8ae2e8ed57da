package main

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// hint is what to do about an error that many meet; "" where its text says enough.
func hint(err error) string {
	var (
		network   *net.OpError
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		path      *fs.PathError
	)
	switch text := err.Error(); {
	case clientcmd.IsEmptyConfig(err), strings.Contains(text, "no configuration has been provided"):
		return "no kubeconfig was found: set KUBECONFIG or --kubeconfig FILE"
	case clientcmd.IsContextNotFound(err), strings.HasPrefix(text, "kubeconfig: context"):
		return "'kubectl config get-contexts' lists the contexts of the kubeconfig"
	case clientcmd.IsConfigurationInvalid(err):
		return "check the kubeconfig with 'kubectl config view'"
	case errors.As(err, &authority):
		return "the certificate is not of the authority in the kubeconfig: is it the right cluster?"
	case errors.As(err, &name), errors.As(err, &network):
		return "is the server up, and the address right? --kubeconfig and --context choose the cluster, --repo the repository"
	case apierrors.IsUnauthorized(err):
		return "the credentials of the kubeconfig may have expired; log in again"
	case apierrors.IsForbidden(err):
		return "'kubectl auth can-i' tells what the user of the kubeconfig, or of --as, may do"
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist):
		return "check the path; it is relative to the working directory"
	}
	return ""
}
