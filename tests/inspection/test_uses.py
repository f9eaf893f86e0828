from __future__ import annotations

import pytest

from bisect_env.errors import BadInput
from bisect_env.inspection.records import NotFound, Scope
from bisect_env.inspection.uses import uses
from tests.support.sources import Texts

HOME = """
_flag = False

def is_set():
    return _flag

class Tracer:
    def trace(self):
        global _flag
        old = _flag
        _flag = True
        try:
            self.run()
        finally:
            _flag = old
"""


def lines(found):
    return [f"{use.function} {use.line}" + (f" by {use.through}" if use.through else "") for use in found]


def found(modules, dotted="p.home._flag", **options):
    return uses(Texts(modules), dotted, "p", **options)


def test_stores_and_reads_in_the_defining_module():
    result = found({"p.home": HOME})
    assert result.scope is Scope.PROCESS
    assert lines(result.stores) == ["p.home 2", "p.home:Tracer.trace 11", "p.home:Tracer.trace 15"]
    assert lines(result.reads) == ["p.home:is_set 5", "p.home:Tracer.trace 10"]
    assert (result.stores[1].path, result.stores[1].text) == ("p/home.py", "_flag = True")


@pytest.mark.parametrize(
    "text",
    [
        "import p.home\ndef f(): p.home._flag = 1",
        "import p\ndef f(): p.home._flag = 1",
        "import p.home as h\ndef f(): h._flag = 1",
        "from p import home as h\ndef f(): h._flag = 1",
        "from . import home\ndef f(): home._flag = 1",
        "from .home import Tracer\nfrom p.again import home as h\ndef f(): h._flag = 1",
        "def f():\n    import p.home as late; late._flag = 1",
        "import p.home as h\nx = h\ndef f(): x._flag = 1",
        "import p.home as h\ndef f(): setattr(h, '_flag', 1)",
        "import p.home as h\ndef f(): h._flag += 1",
        "import p.home as h\ndef f(): del h._flag",
        "import sys\ndef f(): sys.modules['p.home']._flag = 1",
        "from unittest import mock\nimport p.home\ndef f(): mock.patch.object(p.home, '_flag', 1)",
        "from unittest import mock\ndef f(): mock.patch('p.home._flag', 1)",
        "class C:\n    def f(self):\n        import p.home\n        p.home._flag = 1",
    ],
)
def test_stores_through_any_name_of_the_module(text):
    result = found({"p.home": "_flag = 0\nclass Tracer: ...", "p.user": text, "p.again": "from p import home"})
    (store,) = [one for one in result.stores if one.path != "p/home.py"]
    assert store.function in {"p.user:f", "p.user:C.f"}
    assert not result.reads


@pytest.mark.parametrize(
    "text",
    [
        "import p.home\ndef f(): return p.home._flag",
        "from p.home import _flag\ndef f(): return _flag",
        "from p.home import _flag as g\ndef f(): return g",
        "import p.home\ndef f(): return getattr(p.home, '_flag', None)",
        "from p.again import _flag\ndef f(): return _flag",
    ],
)
def test_reads_through_any_name(text):
    result = found({"p.home": "_flag = 0", "p.user": text, "p.again": "from p.home import _flag"})
    assert lines(one for one in result.reads if one.path == "p/user.py") == [f"p.user:f {text.count(chr(10)) + 1}"]


@pytest.mark.parametrize(
    "text",
    [
        # Local variables, parameters and attributes of the same name, another module's flag, a copy's new value.
        "import p.home\ndef f():\n    _flag = 1\n    return _flag",
        "import p.home\ndef f(_flag): return _flag",
        "import p.home\nclass C:\n    _flag = 1\n    def f(self): self._flag = 2",
        "import p.other\ndef f(): p.other._flag = 1",
        "from p.home import _flag\ndef f():\n    global _flag\n    _flag = 2",
        "# p.home._flag = 1\n'p.home._flag'",
    ],
)
def test_other_things_of_the_same_name_are_no_stores(text):
    result = found({"p.home": "_flag = 0", "p.user": text, "p.other": "_flag = 0"})
    assert [one.path for one in result.stores] == ["p/home.py"]


def test_local_variables_at_home_are_no_uses():
    text = "_flag = 0\ndef f():\n    _flag = 1\n    return _flag\ndef g(_flag): return _flag\nclass C:\n    _flag = 3\n"
    result = found({"p.home": text})
    assert lines(result.stores) == ["p.home 1"] and not result.reads


def test_a_threads_own_state_and_its_setter():
    modules = {
        "p.home": """
            import threading
            _tls = threading.local()
            def _set(value):
                '''Store it.'''
                _tls.flag = value
            def _get(): return getattr(_tls, "flag", False)
            def trace():
                old = _get()
                _set(True)
        """,
        "p.user": """
            import p.home
            from p.home import _set, _tls as mine
            def by_setter(): p.home._set(False)
            def imported(): _set(False)
            def directly(): mine.flag = 1
            def reads(): return p.home._tls.flag
        """,
    }
    result = found(modules, "p.home._tls")
    assert result.scope is Scope.THREAD
    assert lines(result.stores) == [
        *("p.home 3", "p.home:_set 6", "p.home:trace 10 by _set"),
        *("p.user:by_setter 4 by _set", "p.user:imported 5 by _set", "p.user:directly 6"),
    ]
    assert lines(result.reads) == ["p.home:_get 7", "p.home:trace 9 by _get", "p.user:reads 7"]


def test_a_class_of_thread_locals_a_context_variable_and_a_dictionary():
    home = """
        import threading
        from contextvars import ContextVar
        class Local(threading.local):
            flag = False
        tls = Local()
        var: ContextVar[int] = ContextVar("var")
        table = {}
        def f():
            tls.flag = True
            token = var.set(1)
            var.reset(token)
            table["x"] = 1
            table.update(y=2)
            return var.get(), table["x"], table.get("x")
    """
    assert found({"p.home": home}, "p.home.tls").scope is Scope.THREAD
    context = found({"p.home": home}, "p.home.var")
    assert context.scope is Scope.CONTEXT
    assert [one.line for one in context.stores] == [7, 11, 12] and [one.line for one in context.reads] == [15]
    table = found({"p.home": home}, "p.home.table")
    assert table.scope is Scope.PROCESS
    assert [one.line for one in table.stores] == [8, 13, 14] and [one.line for one in table.reads] == [15]


def test_a_function_that_does_more_than_store_is_no_setter():
    modules = {
        "p.home": "_flag = 0\ndef put(v):\n    global _flag\n    print(v)\n    _flag = v\n",
        "p.user": "from p.home import put\nput(1)",
    }
    assert lines(found(modules).stores) == ["p.home 1", "p.home:put 5"]


def test_only_the_modules_asked_for_are_read():
    modules = {"p.home": HOME, "p.a": "import p.home\np.home._flag = 1", "p.b": "import p.home\np.home._flag = 1"}
    texts = Texts(modules)
    result = uses(texts, "p.home._flag", "p", within=("p.a", "p.missing"))
    assert "p.b" not in texts.reads
    assert [one.function for one in result.stores if one.path != "p/home.py"] == ["p.a"]
    assert result.files == 2
    assert found(modules).files == 4


def test_a_re_exported_name_is_looked_for_where_it_is_defined():
    result = found({"p": "from .home import _flag", "p.home": HOME}, "p._flag")
    assert result.found.module == "p.home" and len(result.stores) == 3


def test_what_is_not_there_and_what_is_no_variable():
    absent = found({"p.home": HOME}, "p.home._flagg")
    assert absent.scope is Scope.ABSENT and isinstance(absent.found, NotFound)
    assert absent.found.nearest[0] == "p.home._flag"
    for dotted in ("p.home", "p.home.Tracer.trace"):
        with pytest.raises(BadInput, match="module-level"):
            found({"p.home": HOME}, dotted)


def test_form_feeds_end_no_line():
    told = found({"p.home": "\x0c\n_flag = False\n\x0c\ndef f():\n    global _flag\n    _flag = True\n"})
    assert [(use.line, use.text) for use in told.stores] == [(2, "_flag = False"), (6, "_flag = True")]


ENTRY = """
from contextvars import ContextVar
class _ConfigEntry:
    def __init__(self, name):
        self.user_override = {holder}
def install_config_module(module): ...
"""
CONFIG_MODULE = "torch.utils._config_module"


@pytest.mark.parametrize(
    ("install", "holder", "scope"),
    [
        ("from torch.utils._config_module import install_config_module", "ContextVar(name)", Scope.CONTEXT),
        ("from torch.utils._config_module import install_config_module", "threading.local()", Scope.THREAD),
        ("from torch.utils._config_module import install_config_module", "UNSET", Scope.PROCESS),
        ("from torch.utils._config_module import install_config_module", None, Scope.UNKNOWN),
        ("from ..utils._config_module import install_config_module as put", "ContextVar(name)", Scope.CONTEXT),
        ("from torch.utils import _config_module as c", "ContextVar(name)", Scope.CONTEXT),
    ],
)
def test_an_entry_of_a_configuration_is_shared_as_that_keeps_what_is_set(install, holder, scope):
    called = "put" if " as put" in install else "c.install_config_module" if " as c" in install else install.split()[-1]
    modules = {
        "torch._dynamo.config": f"import sys\n{install}\nlimit = 8\nmodes = set()\n{called}(sys.modules[__name__])\n",
        "torch.user": "from torch._dynamo import config\ndef f():\n    config.limit = 1\n    config.modes.add(1)\n",
    }
    if holder is not None:
        modules[CONFIG_MODULE] = ENTRY.format(holder=holder)
    told = uses(Texts(modules), "torch._dynamo.config.limit", "torch")
    assert told.scope is scope
    assert lines(told.stores) == ["torch._dynamo.config 3", "torch.user:f 3"]
    assert lines(uses(Texts(modules), "torch._dynamo.config.modes", "torch").stores)[1:] == ["torch.user:f 4"]


@pytest.mark.parametrize(
    ("home", "scope"),
    [
        ("_flag = False", Scope.PROCESS),
        ("_flag = dict()", Scope.PROCESS),
        ("class C: ...\n_flag = C()", Scope.PROCESS),
        ("from elsewhere import make\n_flag = make()", Scope.UNKNOWN),
        ("import threading\ndef make():\n    return threading.local()\n_flag = make()", Scope.UNKNOWN),
        ("import sys\n_flag = False\nsys.modules[__name__] = Other(__name__)", Scope.UNKNOWN),
        ("import sys\n_flag = False\nsys.modules[__name__].__class__ = Other", Scope.UNKNOWN),
        ("import sys\n_flag = False\nme = sys.modules[__name__]\nsys.modules['p.other'] = me", Scope.PROCESS),
    ],
)
def test_the_process_shares_it_only_where_the_text_tells_so(home, scope):
    assert found({"p.home": home}).scope is scope
