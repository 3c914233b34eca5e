package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
)

func configCommand() cli.Command {
	var file string
	flags := func(flags *pflag.FlagSet) { cli.ConfigFlag(flags, &file) }
	return cli.Command{
		Use: "config", Short: "Check and print the daemon's configuration",
		Long: `Check and print the daemon's configuration: a YAML file, named by --config or else TIDEMARK_CONFIG, and the
variables TIDEMARK_…, which override it. Neither is required.`,
		Example: "  tidemark config validate --config tidemark.yaml",
		Sub: []cli.Command{
			{
				Use: "validate", Short: "List everything that is wrong with the configuration", Needs: cli.Nothing, Flags: flags,
				Run: func(_ context.Context, s *cli.Session) error { return configValidate(s, file) },
			},
			{
				Use: "print", Short: "Print the configuration with its defaults and without its secrets", Needs: cli.Nothing, Flags: flags,
				Run: func(_ context.Context, s *cli.Session) error { return configPrint(s, file) },
			},
			{
				Use: "schema", Short: "Print the JSON Schema of the file, for editors", Needs: cli.Nothing,
				Run: func(_ context.Context, s *cli.Session) error {
					s.Write(config.Schema())
					return nil
				},
			},
		},
	}
}

func configValidate(s *cli.Session, file string) error {
	if !s.JSON {
		if _, err := s.LoadConfig(file); err != nil {
			return err
		}
		s.Line("the configuration is valid")
		return nil
	}
	c, err := s.App.ReadConfig(file)
	problems := []config.Problem{}
	var bad *config.Error
	if errors.As(err, &bad) {
		problems = bad.Problems
	}
	s.Object(cli.Fields{"valid", err == nil, "problems", problems, "warnings", append([]string{}, c.Warnings...)})
	return s.BadConfig(err)
}

func configPrint(s *cli.Session, file string) error {
	c, err := s.LoadConfig(file)
	if err != nil {
		return err
	}
	text, err := c.Print()
	if err != nil || !s.JSON {
		s.Write(text)
		return err
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	s.Object(document)
	return nil
}
