package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"

	"golang.org/x/term"
)

// announce prints what a verb is about to change to a user at a terminal. The log of a pipeline already shows the command.
func (t *terminal) announce(verb string, of inventory.Sync, in *clusterFlags) error {
	if !t.errTTY {
		return nil
	}
	t.progress.Stop()
	_, err := fmt.Fprintf(t.err, "%s\n", printable(fmt.Sprintf("%s changes sync %s, namespace %s, in %s", verb, of.Name, of.Namespace, in)))
	return err
}

// confirm asks the user at a terminal whether to go on. Without a terminal, it returns an error.
func (t *terminal) confirm(question, without string) error {
	in, ok := t.in.(*os.File)
	if !ok || !t.errTTY || !term.IsTerminal(int(in.Fd())) {
		return usagef("%s", without)
	}
	t.progress.Stop()
	if _, err := fmt.Fprintf(t.err, "%s [y/N] ", printable(question)); err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was changed, because the answer was not y")
}
