package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"headgate.dev/headgate/reconcile/preflight"
)

// This file reads what package preflight judges before the first pass. It only sends requests with the method GET.

// An inspectAPI reads what a forge shows about a token and about the protection of branches.
type inspectAPI interface {
	token(ctx context.Context) (preflight.Token, error)
	// protection returns which statuses a branch requires; "" is the default branch.
	protection(ctx context.Context, branch string) (preflight.Protection, error)
}

// An Inspector reads what a forge shows about an account.
type Inspector struct {
	client    client
	transport *transport
	forge     Forge
}

// Inspector returns the inspector of an account.
func (a Account) Inspector() (*Inspector, error) {
	of, t, err := a.open()
	if err != nil {
		return nil, err
	}
	return &Inspector{of, t, a.Repository.Kind.forge()}, nil
}

// inspectable returns the requests about a token and branches; an error if Headgate knows none for this forge.
func (i *Inspector) inspectable() (inspectAPI, error) {
	if of, can := i.client.(inspectAPI); can {
		return of, nil
	}
	return nil, fmt.Errorf("%w from %s", ErrNotInspected, i.forge.Name)
}

// ErrNotInspected means that Headgate knows no request for this forge.
var ErrNotInspected = errors.New("Headgate does not read this") //nolint:staticcheck // a name

// Token returns what the forge shows about the token.
func (i *Inspector) Token(ctx context.Context) (preflight.Token, error) {
	of, err := i.inspectable()
	if err != nil {
		return preflight.Token{}, err
	}
	return inspected(ctx, i.transport, of.token)
}

// Protection returns which statuses a branch requires; "" is the default branch.
func (i *Inspector) Protection(ctx context.Context, branch string) (preflight.Protection, error) {
	of, err := i.inspectable()
	if err != nil {
		return preflight.Protection{}, err
	}
	return inspected(ctx, i.transport, func(ctx context.Context) (preflight.Protection, error) { return of.protection(ctx, branch) })
}

// PostedBy returns the accounts that posted a status on a commit, without repetition.
func (i *Inspector) PostedBy(ctx context.Context, commit, status string) ([]string, error) {
	of, reports := i.client.(approvalAPI)
	if !reports {
		return nil, fmt.Errorf("%w from %s", ErrNotInspected, i.forge.Name)
	}
	all, err := inspected(ctx, i.transport, func(ctx context.Context) ([]pastStatus, error) { return of.verdicts(ctx, commit) })
	var by []string
	for _, s := range all {
		if s.context == status && !slices.Contains(by, s.by) {
			by = append(by, s.by)
		}
	}
	slices.Sort(by)
	return by, err
}

// inspected sends requests whose errors do not contain the token.
func inspected[T any](ctx context.Context, t *transport, ask func(context.Context) (T, error)) (of T, err error) {
	defer func() {
		if p := recover(); p != nil { // a client panics on an item that is null
			err = errors.New("cannot understand the answer of the forge")
		}
	}()
	if _, err := t.token(ctx); err != nil { // hide needs the current token
		return of, err
	}
	if of, err = ask(ctx); err != nil {
		return of, t.redacted(err)
	}
	return of, nil
}

func tokenExpiry(of string, at time.Time) preflight.Expiry {
	return preflight.ExpiresAt("the token of "+of, metav1.NewTime(at), metav1.Now())
}

// wordsOf splits a list of words at commas. It is not nil.
func wordsOf(text string) []string {
	return append([]string{}, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })...)
}

// unique returns a protection whose contexts are sorted, without repetition.
func unique(p preflight.Protection) preflight.Protection {
	slices.Sort(p.Required)
	p.Required = slices.Compact(p.Required)
	return p
}
