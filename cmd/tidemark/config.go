package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/oneline"
)

const configVariable = "TIDEMARK_CONFIG"

func newConfig(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the configuration of the daemon",
		Long: `Check and show the configuration of the daemon: a YAML file, named by --config, else
TIDEMARK_CONFIG, and the variables TIDEMARK_…, which go before it. Neither is needed.`,
	}
	validate := &cobra.Command{
		Use: "validate", Short: "Tell everything that is wrong with the configuration",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.configValidate(cmd, file) },
	}
	show := &cobra.Command{
		Use: "print", Short: "Print the configuration with its defaults and without its secrets",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.configPrint(cmd, file) },
	}
	schema := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the file, for editors",
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
			return err
		},
	}
	configFlag(validate, &file)
	configFlag(show, &file)
	cmd.AddCommand(validate, show, schema)
	return cmd
}

// configFlag adds --config, which loadConfig takes.
func configFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", "", "file with the configuration; default: TIDEMARK_CONFIG")
}

// readConfig reads the configuration, in which --database-url goes before everything. An
// error is for badConfig.
func (a *app) readConfig(file string) (config.Config, error) {
	environ := os.Environ()
	if a.databaseURL != "" {
		environ = append(environ, "TIDEMARK_DATABASE_URL="+a.databaseURL)
	}
	return config.Load(cmp.Or(file, os.Getenv(configVariable)), environ)
}

// badConfig tells all problems, a line each, and returns an error that says how many.
func badConfig(p *printer, err error) error {
	var bad *config.Error
	if !errors.As(err, &bad) {
		return err
	}
	for _, problem := range bad.Problems {
		fmt.Fprintln(p.err, oneline.Clean(problem.String()))
	}
	return hinted{
		usagef("the configuration has %s", count(len(bad.Problems), "problem", "problems")),
		"tidemark config schema lists every key with what it takes.",
	}
}

// loadConfig is readConfig for commands that remark on warnings and go on.
func (a *app) loadConfig(p *printer, file string) (config.Config, error) {
	c, err := a.readConfig(file)
	if err != nil {
		return c, badConfig(p, err)
	}
	for _, warning := range c.Warnings {
		p.note("warning: %s", warning)
	}
	return c, nil
}

func (a *app) configValidate(cmd *cobra.Command, file string) error {
	p, err := a.printer(cmd)
	if err != nil {
		return err
	}
	if !p.json {
		if _, err := a.loadConfig(p, file); err != nil {
			return err
		}
		return p.linef("the configuration is fine")
	}
	c, err := a.readConfig(file)
	found := struct {
		Valid    bool             `json:"valid"`
		Problems []config.Problem `json:"problems"`
		Warnings []string         `json:"warnings"`
	}{err == nil, []config.Problem{}, append([]string{}, c.Warnings...)}
	var bad *config.Error
	if errors.As(err, &bad) {
		found.Problems = bad.Problems
	}
	if err := p.object(found); err != nil {
		return err
	}
	return badConfig(p, err)
}

func (a *app) configPrint(cmd *cobra.Command, file string) error {
	p, err := a.printer(cmd)
	if err != nil {
		return err
	}
	c, err := a.loadConfig(p, file)
	if err != nil {
		return err
	}
	text, err := c.Print()
	if err != nil {
		return err
	}
	if !p.json {
		_, err = p.out.Write(text)
		return err
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	return p.object(document)
}
