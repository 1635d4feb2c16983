// A shared library that is no tool, for the tests.
extern "C" int no_tool() {
    return 0;
}
