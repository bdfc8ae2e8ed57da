package engine

import (
	"context"
	"time"
)

type ageKey struct{}

// Within allows the answers to questions about a repository to be this old, so that syncs that ask at different times share one.
func Within(ctx context.Context, age time.Duration) context.Context {
	return context.WithValue(ctx, ageKey{}, age)
}

// Age returns how old an answer may be; zero if the question has to be asked now.
func Age(ctx context.Context) time.Duration {
	age, _ := ctx.Value(ageKey{}).(time.Duration)
	return age
}
