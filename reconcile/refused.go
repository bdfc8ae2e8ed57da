package reconcile

import (
	"errors"

	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/catalogue"
)

// ofCommit reports whether an error is caused by the commit, so that only a new commit can end it.
func ofCommit(err error) bool {
	var wrong catalogue.Errors
	var away unfetched
	return refused(err) != "" || errors.As(err, &wrong) && !errors.As(err, &away)
}

// An unfetched error is the error of a commit that cannot be fetched at the moment.
type unfetched struct{ error }

func (e unfetched) Unwrap() error { return e.error }

// A refusal is the error of a Source about a commit without the required signatures.
type refusal struct {
	error

	revision string
}

func (e refusal) Unwrap() error { return e.error }

// Code returns the code of the error.
func (refusal) Code() reason.Code { return reason.Unverified }

// unread wraps an error of a Source, as a refusal or as an unfetched error.
func unread(err error) error {
	if of, is := errors.AsType[interface {
		error
		Unverified() string
	}](err); is {
		return refusal{err, of.Unverified()}
	}
	return unfetched{err}
}

// refused returns the commit that an error refuses; "" if it is not a refusal.
func refused(err error) string {
	of, _ := errors.AsType[refusal](err)
	return of.revision
}
