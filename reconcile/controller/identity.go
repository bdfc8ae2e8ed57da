package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	authenticationv1 "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// users is the prefix of the user names of service accounts.
const users = "system:serviceaccount:"

// reserved are the namespaces of Kubernetes itself. The controller acts as none of their service accounts, whatever its rights are.
var reserved = []string{"kube-system", "kube-public", "kube-node-lease"}

// account returns the user name of the service account of a Sync. own is the user name of the controller, which no Sync may use.
func account(s v1alpha1.Sync, initial, own string) (string, error) {
	name := cmp.Or(s.Spec.ServiceAccountName, initial)
	user := users + s.Namespace + ":" + name
	switch {
	case slices.Contains(reserved, s.Namespace):
		return "", refuse(v1alpha1.ReasonServiceAccountRefused, "metadata.namespace: no Sync runs in %s, whose service accounts are those of Kubernetes", s.Namespace)
	case name == "":
		return "", refuse(v1alpha1.ReasonNoServiceAccount, "spec.serviceAccountName: is missing, and the controller has no --default-service-account: name the service account in %s that may apply this Sync", s.Namespace)
	case user == own:
		return "", refuse(v1alpha1.ReasonServiceAccountRefused, "spec.serviceAccountName: %s is the service account of the controller, which is not for Syncs: name another one", name)
	}
	return user, nil
}

// ownName returns the user name of the controller.
func ownName(ctx context.Context, config *rest.Config) (string, error) {
	client, err := authentication.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot read the user name of the controller: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// hasAccount returns an error if the service account of a Sync does not exist. The API server lets the controller act as a service account
// that is gone, because bindings of roles only name it.
func (c *controller) hasAccount(ctx context.Context, s v1alpha1.Sync) error {
	name := cmp.Or(s.Spec.ServiceAccountName, c.ServiceAccount)
	if err := c.direct.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &core.ServiceAccount{}); err != nil {
		return fmt.Errorf("the service account of the Sync: %w", err)
	}
	return nil
}

// as returns the configuration with which the controller acts as a user. All Syncs of a user share it, and with it watches and discovery.
func (c *controller) as(user string) *rest.Config {
	return c.identities.Get(user, func() *rest.Config {
		config := rest.CopyConfig(c.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user} // the API server adds the groups of a service account
		return config
	})
}
