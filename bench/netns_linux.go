package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const (
	bridgeName    = "tidemark-bench"
	bridgeAddress = "10.213.77.1"
)

// networks are namespaces behind a bridge of this host: what runs in one has a network of its own, and reaches nothing but the bridge.
type networks int

// newNetworks makes so many.
func newNetworks(n int) (networks, error) {
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		return 0, skipped("namespaces of the network need root and ip (iproute2)")
	}
	made := networks(n)
	_ = made.close() // those of a run that was killed
	commands := []string{
		"link add " + bridgeName + " type bridge",
		"addr add " + bridgeAddress + "/24 dev " + bridgeName,
		"link set " + bridgeName + " up",
	}
	for i := range n {
		commands = append(commands,
			"netns add "+namespace(i),
			fmt.Sprintf("link add %s type veth peer name eth0 netns %s", outside(i), namespace(i)),
			fmt.Sprintf("link set %s master %s up", outside(i), bridgeName),
			fmt.Sprintf("-n %s addr add 10.213.77.%d/24 dev eth0", namespace(i), 10+i),
			fmt.Sprintf("-n %s link set eth0 up", namespace(i)),
		)
	}
	for _, command := range commands {
		if err := ip(command); err != nil {
			return 0, errors.Join(err, made.close())
		}
	}
	return made, nil
}

func namespace(i int) string { return fmt.Sprintf("tidemark-bench-%d", i) }

// outside is the end of a namespace's cable that is on the bridge.
func outside(i int) string { return fmt.Sprintf("tidemark-b%d", i) }

// in is the command that runs a program in a namespace.
func (networks) in(i int) []string { return []string{"ip", "netns", "exec", namespace(i)} }

// plug pulls the cable of a namespace, or puts it in again.
func (networks) plug(i int, in bool) error {
	state := "down"
	if in {
		state = "up"
	}
	return ip("link set " + outside(i) + " " + state)
}

func (n networks) close() error {
	var errs []error
	for i := range int(n) {
		errs = append(errs, ip("netns delete "+namespace(i))) // its cable goes with it
	}
	return errors.Join(append(errs, ip("link delete "+bridgeName))...)
}

func ip(command string) error {
	if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w %s", command, err, out)
	}
	return nil
}
