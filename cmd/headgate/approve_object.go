package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// ofObject returns the name of the Sync object that arguments begin with, and the arguments after it: sync NAME …, or sync/NAME ….
func ofObject(args []string) (name string, rest []string, is bool, err error) {
	if len(args) == 0 {
		return "", nil, false, nil
	}
	kind, _, with := strings.Cut(args[0], "/")
	switch {
	case !slices.Contains(kindWords, kind):
		return "", nil, false, nil
	case with:
		name, err = oneName("sync", args[:1])
		return name, args[1:], true, err
	case len(args) == 1:
		return "", nil, true, usagef("name the Sync: sync NAME")
	}
	name, err = oneName("sync", args[:2])
	return name, args[2:], true, err
}

// approveObject annotates a Sync object with an approval by the user of the cluster.
func (t *terminal) approveObject(ctx context.Context, of *objectFlags, name, text string) error {
	given, err := digests(text)
	switch {
	case err != nil:
		return usagef("%w", err)
	case len(given) != 1:
		return usagef("give one digest, not %d", len(given))
	}
	syncs, namespace, err := of.objects()
	if err != nil {
		return err
	}
	found, err := findSyncs(ctx, syncs, []string{name})
	if err != nil {
		return err
	}
	s, err := typed(&found[0])
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(s.Status.Holds, func(h v1alpha1.HeldSteps) bool { return h.Digest == given[0].Digests[0] }) {
		t.warn("the status of %s/%s shows no hold with this digest; it approves nothing unless a later pass holds exactly that", namespace, name)
	}
	user, err := of.whoAmI(ctx)
	if err != nil {
		return fmt.Errorf("an approval names its user, and the API server does not return it: %w", err)
	}
	line := approval.Line(given[0].Digests[0], given[0].UpTo)
	value := fmt.Sprintf("%s by %s at %s", line, user, time.Now().UTC().Format(time.RFC3339))
	if as := v1alpha1.ApprovalsIn(value); len(as) != 1 || as[0].By != user {
		return fmt.Errorf("the user name %q cannot be part of an approval", user)
	}
	if _, err := annotate(ctx, syncs, name, v1alpha1.ApproveAnnotation, value); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "sync.headgate.dev/%s: %s approves %s\n", name, printable(user), line)
	return err
}

// whoAmI returns the name that the API server has for the user.
func (f *objectFlags) whoAmI(ctx context.Context) (string, error) {
	cfg, err := f.in.config()
	if err != nil {
		return "", err
	}
	who, err := authenticationv1.NewForConfig(cfg)
	if err != nil {
		return "", err
	}
	review, err := who.SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}
