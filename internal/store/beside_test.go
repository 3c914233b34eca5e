package store_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

var update = flag.Bool("update", false, "record the statements of this build, as those of a release")

const between = "\n----\n"

// A parameter beside an integer literal is an integer of 32 bits, which a number of an event or a dead letter does not fit.
func TestNumbersHaveTypes(t *testing.T) {
	t.Parallel()
	for _, statement := range statements(t) {
		if bare := untyped.FindString(statement); bare != "" {
			t.Errorf("give the parameter of %s a type, such as ::bigint, in\n%s", bare, statement)
		}
	}
}

var untyped = regexp.MustCompile(`(nullif|coalesce|greatest|least)\(\$\d+, *-?\d|\$\d+ *[-=<>+*]+ *\d|\b\d+ *[-=<>+*]+ *\$\d+[^:\d]`)

// AD3: the daemons, the command and the programs of a release go on beside the schema of the next one. Each file of
// testdata/beside has the statements that the Go code of a release sends; each must still be understood. What a release is
// made of is recorded with -update. If this fails: keep the old function beside the new one, or mark the migration as breaking
// and delete the files of the releases before it.
func TestBeside(t *testing.T) {
	t.Parallel()
	conn := tidemarktest.NewDB(t).Connect(t)
	understood := func(statement string) error {
		_, err := conn.Prepare(t.Context(), "", statement)
		return err
	}
	if *update {
		kept := slices.DeleteFunc(statements(t), func(s string) bool { return understood(s) != nil }) // a part of one
		if err := os.WriteFile(fmt.Sprintf("testdata/beside/%04d.txt", store.Migrations), []byte(strings.Join(kept, between)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("testdata/beside/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no release", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Split(string(text), between)
		if len(all) < 100 {
			t.Errorf("%s has %d statements", file, len(all))
		}
		for _, statement := range all {
			if err := understood(statement); err != nil {
				t.Errorf("%s: a program of that release sends\n%s\nand gets %v", filepath.Base(file), statement, err)
			}
		}
	}
}

// statements are the texts with SQL for the schema in the code of the store and of Emit, constants put together.
func statements(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, dir := range []string{".", "../.."} {
		var files []*ast.File
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		constants := map[string]string{}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		for range 3 { // constants that are made of others
			for _, file := range files {
				ast.Inspect(file, func(n ast.Node) bool {
					if v, is := n.(*ast.ValueSpec); is && len(v.Names) == 1 && len(v.Values) == 1 {
						if text := folded(v.Values[0], constants); text != "" {
							constants[v.Names[0].Name] = text
						}
					}
					return true
				})
			}
		}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if e, is := n.(ast.Expr); is {
					if text := folded(e, constants); strings.Contains(text, "tidemark.") {
						found[text] = true
					}
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// folded is the text of an expression of constants. Empty: it is none.
func folded(e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.Ident:
		return constants[e.Name]
	case *ast.BinaryExpr:
		a, b := folded(e.X, constants), folded(e.Y, constants)
		if a != "" && b != "" && e.Op == token.ADD {
			return a + b
		}
	}
	return ""
}
